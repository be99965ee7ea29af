package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"
)

const patience = 5 * time.Second

// copyKeys copies keys from the nodes in a deletion hook's environment. It fails if no
// node has a key.
func copyKeys(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: tool copy TARGET KEY...")
	}
	found := map[string]string{}
	for node := range strings.SplitSeq(os.Getenv("CACHE_NODES"), ",") {
		for _, key := range args[1:] {
			value, ok, err := get(node, key)
			if err != nil {
				return err
			}
			if ok {
				found[key] = value
			}
		}
	}
	for _, key := range args[1:] {
		value, ok := found[key]
		if !ok {
			return fmt.Errorf("no node has the key %s", key)
		}
		answer, err := ask(args[0], fmt.Sprintf("set %s 0 0 %d\r\n%s\r\n", key, len(value), value))
		if err != nil || answer != "STORED\r\n" {
			return fmt.Errorf("set %s on %s: %q, %w", key, args[0], answer, err)
		}
	}
	fmt.Printf("copied %d keys\n", len(found))
	return nil
}

func get(node, key string) (string, bool, error) {
	answer, err := ask(node, "get "+key+"\r\n")
	if err != nil || answer == "END\r\n" {
		return "", false, err
	}
	lines := strings.Split(answer, "\r\n")
	if len(lines) < 3 || !strings.HasPrefix(lines[0], "VALUE ") {
		return "", false, fmt.Errorf("%s answered %q", node, answer)
	}
	return lines[1], true, nil
}

// ask sends one command to a memcached and returns the whole answer.
func ask(node, command string) (string, error) {
	connection, err := net.DialTimeout("tcp", node, patience)
	if err != nil {
		return "", err
	}
	defer func() { _ = connection.Close() }()
	if err := connection.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(connection, command+"quit\r\n"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(bufio.NewReader(connection))
	return string(answer), err
}
