package main

import "syscall"

// childAttributes makes the kernel kill a child when up dies, even by SIGKILL.
// The signal is tied to the thread that started the child; Go keeps its threads
// until the process ends, unless a goroutine locked to one returns (none does).
//
// The process group of its own keeps Ctrl-C in a terminal from the children: the
// API server would never end if etcd were gone first.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
