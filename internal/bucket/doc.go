// Package bucket reads and writes objects in gs://, s3:// and file:// buckets,
// on top of gocloud.dev/blob, with what that leaves to its callers: requests
// are repeated where it helps, uploads are checked on arrival, and an error
// says which permission is missing.
//
// A bucket's URL may have a path, which every key is below:
// gs://bucket/some/prefix. That of file:// is the folder itself. Objects in a
// folder lie beside small files named *.attrs, in which gocloud.dev keeps
// their content type, metadata and checksum.
//
// Credentials come from where each provider's own tools take them: application
// default credentials, workload identity and keyless OIDC for gs://; the
// environment, shared configuration, web identity and instance roles for s3://.
package bucket
