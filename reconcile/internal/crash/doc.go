// Package crash has tests and no code. They are about runs that are hit by faults:
// killed, stopped, cut off, overtaken by others, or answered with errors. Its stories
// are also those of the test of rights.
package crash
