package config

const SchemaID = schemaID

var GlobsToRegexp = globsToRegexp
