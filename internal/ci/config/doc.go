// Package config is op-readiness.yaml, the one file from which 'generate prow',
// 'generate testgrid' and 'generate workflows' make what they write: the matrix
// of clusters, how a run is called, where results go, and how Prow, TestGrid
// and GitHub are to run and show it.
//
// The types of this package are the format: their comments are the
// descriptions and their tags the constraints of the JSON Schema ([Schema]),
// and [Parse] holds a file against that schema, so that an editor and this
// program say the same of it. What a schema cannot say is checked beside it.
// Everything wrong is reported at once, each with file, line, field and fix.
//
// The package also says what follows from a file, purely: the cells of the
// matrix ([Config.Cells]) and the jobs with their names ([Config.Jobs]). A
// job's name is the name of its Prow job, of its folder in the bucket, and of
// its test group in TestGrid; it is made here and nowhere else.
package config
