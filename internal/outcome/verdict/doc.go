// Package verdict judges a run: the outcome of each case, of each category,
// and of what the run speaks about as a whole. It is pure: the same results
// folder always yields the same verdict, also later and elsewhere.
//
// A pass counts only where it is proven. A case whose tests passed is
// unproven when the pods were not observed where the case wants them, or when
// it claims full proof with an image that the standard does not allow.
package verdict
