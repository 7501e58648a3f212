package grid

import (
	"context"
	"fmt"

	"github.com/GoogleCloudPlatform/testgrid/config"
	"github.com/GoogleCloudPlatform/testgrid/pkg/summarizer"
	"github.com/GoogleCloudPlatform/testgrid/util/gcs"
)

// summarize lets TestGrid's summarizer write a summary of every dashboard.
//
// Update of summarizer v0.0.123 ends its own context when it returns. At that one
// of its goroutines closes the channel of new configurations, and another, which
// waits for either, may take the closed channel for a configuration: that is nil,
// and brings the process down. But whichever it takes, it first waits for its
// fixers to return. So there is one that never does, and the goroutine comes no
// further. Both stay until the process ends, without what client reads.
func summarize(ctx context.Context, kept *state, configPath gcs.Path) error {
	never := func(context.Context, *config.DashboardQueue) error { select {} }
	client := &struct{ gcs.ConditionalClient }{kept.client()}
	defer func() { client.ConditionalClient = nil }()
	// All is in memory, and over soon: it is not to be ended half-way.
	err := summarizer.Update(context.WithoutCancel(ctx), client, &summarizer.Metrics{}, configPath, 1, gridPrefix, summaryPrefix, nil, true, 0, never)
	if err != nil {
		return fmt.Errorf("TestGrid's summarizer: %w", err)
	}
	return ctx.Err()
}
