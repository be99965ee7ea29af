// Package cost has the cost of a process, as meter measures it.
package cost

import "time"

// Cost is the cost of one process from its start to its end.
type Cost struct {
	Wall time.Duration `json:"wall"`
	// CPU is the sum of user and system time.
	CPU time.Duration `json:"cpu"`
	// Memory is the peak of the resident memory in bytes.
	Memory int64 `json:"memory"`
	// Exit is the exit status.
	Exit int `json:"exit"`
}
