// Package rehearse runs a Prow job on this machine as Prow would run it: the
// ProwJob, its pod, JOB_SPEC and the environment are made by Prow's own code, and
// Prow's own initupload, entrypoint and sidecar run as processes around the
// job's command. What they upload is what they would upload from a cluster.
//
// No container runs: a volume is a folder, and where a path of the pod is named
// in an argument, in the environment or in the utilities' options, it becomes
// that folder's. What follows from it, and what cannot be rehearsed, is said in
// [RehearsalPlan.Notes] and [*RefusedError].
package rehearse
