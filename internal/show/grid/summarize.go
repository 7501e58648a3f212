package grid

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"cloud.google.com/go/storage"
	"github.com/GoogleCloudPlatform/testgrid/config"
	"github.com/GoogleCloudPlatform/testgrid/pkg/summarizer"
	"github.com/GoogleCloudPlatform/testgrid/util/gcs"
)

// summarize lets TestGrid's summarizer write a summary of every dashboard.
//
// Of summarizer v0.0.123, Update can bring the process down when it returns: it
// ends its context, at which one of its goroutines closes the channel of new
// configurations, and another one, the one that waits for them, may take that
// for a configuration, which is nil. Only if it waits in its select already does
// it see the end of the context first. So the last thing that Update does
// before, the upload of a summary, is held up until it does.
func summarize(ctx context.Context, kept *state, configPath gcs.Path) error {
	begun := make(chan struct{})
	var once sync.Once
	fixer := func(context.Context, *config.DashboardQueue) error {
		once.Do(func() { close(begun) }) // called by the goroutine that will wait
		return nil
	}
	client := heldClient{ConditionalClient: kept.client(), until: func() {
		<-begun
		for end := time.Now().Add(2 * time.Second); !waiting() && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}}
	// All is in memory, and over soon: it is not to be ended half-way.
	err := summarizer.Update(context.WithoutCancel(ctx), client, &summarizer.Metrics{}, configPath, 1, gridPrefix, summaryPrefix, nil, true, 0, fixer)
	if err != nil {
		return fmt.Errorf("TestGrid's summarizer: %w", err)
	}
	return ctx.Err()
}

// heldClient holds up uploads that are under no condition, which are those of
// summaries.
type heldClient struct {
	gcs.ConditionalClient
	until func()
}

func (c heldClient) If(read, write *storage.Conditions) gcs.ConditionalClient {
	return c.ConditionalClient.If(read, write)
}

func (c heldClient) Upload(ctx context.Context, p gcs.Path, content []byte, public bool, cache string) (*storage.ObjectAttrs, error) {
	c.until()
	return c.ConditionalClient.Upload(ctx, p, content, public, cache)
}

// waiting reports whether the goroutines of summarizer.Update that wait for
// configurations are in their select.
func waiting() bool {
	const waiter = "github.com/GoogleCloudPlatform/testgrid/pkg/summarizer.Update.func2("
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	found := false
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if !strings.Contains(stack, "\n"+waiter) {
			continue
		}
		head, frames, _ := strings.Cut(stack, "\n")
		if !strings.Contains(head, "[select") || !strings.HasPrefix(frames, waiter) {
			return false
		}
		found = true
	}
	return found
}
