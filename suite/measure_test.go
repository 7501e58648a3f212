package suite

import (
	"fmt"

	"github.com/onsi/ginkgo/v2"
)

// measured records a figure of the test, for the report of op-readiness. It
// decides nothing.
func measured(what string, figure any) {
	ginkgo.AddReportEntry("op-readiness/"+what, fmt.Sprint(figure), ginkgo.ReportEntryVisibilityNever)
}
