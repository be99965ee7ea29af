// Package transcript has only tests. They check the command line against a real API
// server. Each file in testdata is a session at a prompt, with its output and its
// exit status. The package stands below reconcile, because
// reconcile/internal/testenv cannot be imported from cmd.
package transcript
