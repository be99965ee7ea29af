// tool does in one static program what the test's node needs besides Kubernetes:
//
//	tool image -o FILE -name IMAGE [-entrypoint COMMAND] FILE[=PATH]...
//	        writes an archive with an image of these files, for `ctr images import`
//	tool pause
//	        waits for a signal to end, and so keeps the namespaces of a pod
//	tool copy TARGET KEY...
//	        copies the keys from the nodes in $CACHE_NODES to the memcached TARGET
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	commands := map[string]func([]string) error{"image": image, "pause": pause, "copy": copyKeys}
	if len(os.Args) < 2 || commands[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: tool image|pause|copy ...")
		os.Exit(2)
	}
	if err := commands[os.Args[1]](os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func pause([]string) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
	return nil
}
