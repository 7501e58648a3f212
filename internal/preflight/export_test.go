package preflight

// Golden is for tests outside of the package.
var Golden = golden
