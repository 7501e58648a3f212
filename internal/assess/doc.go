// Package assess takes one run from a request to a verdict, in three steps:
//
//	Prepare   checks the request, reaches the cluster, makes the plan, takes the
//	          cluster lock and the results folder; or does so for a run that
//	          goes on
//	Execute   runs the tests, and records each as it ends
//	Conclude  judges what the folder holds, and writes what belongs beside it
//
// It knows no command line: whoever judges clusters from Go calls this package.
// Notes and errors call a field of the [Request] by the flag of op-readiness that
// sets it.
package assess
