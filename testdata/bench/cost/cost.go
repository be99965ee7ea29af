// Package cost is what a process cost, as meter measures it.
package cost

import "time"

// Cost of one process, from its start to its end.
type Cost struct {
	Wall time.Duration `json:"wall"`
	// CPU is user and system time together.
	CPU time.Duration `json:"cpu"`
	// Memory is the peak of the resident memory, in bytes.
	Memory int64 `json:"memory"`
	// Exit is the exit status.
	Exit int `json:"exit"`
}
