package intake

import "cmp"

// Limits are what is taken in at most. A field that is 0 has its default.
type Limits struct {
	// Archive is the size of an archive in bytes; default 256 MiB.
	Archive int64
	// Entries is how many entries an archive, or objects a build, may have,
	// those that are left out included; default 10,000.
	Entries int
	// File is the size of one file in bytes, unpacked; default 256 MiB, which is
	// the most that package result reads.
	File int64
	// Total is the size of all files in bytes, unpacked; default 512 MiB.
	Total int64
	// Ratio is how many bytes may come out of one byte of an archive, where more
	// than 16 MiB come out in all; default 200.
	Ratio int64
	// Logs says that the files below logs/ are taken, too.
	Logs bool
}

// ratioFree is what may be unpacked whatever the ratio: small archives of
// results that repeat themselves are packed very well.
const ratioFree = 16 << 20

func (l Limits) withDefaults() Limits {
	l.Archive = cmp.Or(l.Archive, 256<<20)
	l.Entries = cmp.Or(l.Entries, 10_000)
	l.File = cmp.Or(l.File, 256<<20)
	l.Total = cmp.Or(l.Total, 512<<20)
	l.Ratio = cmp.Or(l.Ratio, 200)
	return l
}
