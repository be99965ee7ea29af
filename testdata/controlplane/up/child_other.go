//go:build unix && !linux

package main

import "syscall"

// childAttributes keeps Ctrl-C in a terminal from the children, as on Linux.
// Other systems cannot tie a child to its parent: kill -9 of up leaves children.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
