// Package transcript holds the command line to what it promises, on a real API
// server: each file in testdata is a session at a prompt, with what it prints
// and the status it ends with.
package transcript
