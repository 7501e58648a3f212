// Package testgrid places runs where TestGrid, Deck and Spyglass read them.
//
// A build is a folder in a bucket, laid out as Prow lays it out
// (https://docs.prow.k8s.io/docs/metadata-artifacts/); paths are those of
// Prow's own pod-utils/gcs, which this package calls. What is published is
// planned first, as an [UploadPlan] that can be shown, and then sent by a
// [Publisher] in the order that TestGrid's updater needs: started.json first,
// finished.json last, and only when everything else has arrived.
package testgrid
