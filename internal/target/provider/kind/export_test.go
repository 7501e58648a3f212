package kind

import "time"

// AskWithin limits how long an engine may take to answer.
func (p *Provider) AskWithin(limit time.Duration) { p.askWithin = limit }
