// Package scripted plays Windows pods from a script, on simulated nodes. What such a
// pod logs, how it ends, and what it answers to commands, is given beforehand as an
// [Answer], so that the flow of a test around what runs on Windows can be shown, and
// broken. It shows nothing of Windows: an answer is invented, or names the place where
// it was recorded.
//
// The cluster is one of kwok, which serves logs and exec as its objects Logs and Exec
// say (https://kwok.sigs.k8s.io/docs/user/kwok-manage-nodes-and-pods/). A pod for
// Windows waits until both are there under its name, and its log can be read through
// the API server; then it runs, and ends. Pods without an answer run, and refuse logs
// and commands at once, as on all simulated nodes.
package scripted
