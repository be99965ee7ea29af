package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v1 "example.com/clusteredcache/api/v1"
	"example.com/clusteredcache/testdata/bench/recording"
)

// player sends the recorded writes of one new cache again for other caches.
type player struct {
	server string
	http   *http.Client
	writes []recording.Request
	// recorded is the cache that was recorded.
	recorded metav1.ObjectMeta
}

// runCreate lists what the product listed, then sends what it sent.
func runCreate(ctx context.Context, to target, args []string) error {
	requests, err := recording.Read(args[0])
	if err != nil {
		return err
	}
	p, err := newPlayer(to.config, requests)
	if err != nil {
		return err
	}
	lists, err := listsOf(requests)
	if err != nil {
		return err
	}
	var caches []v1.ClusteredCache
	for _, l := range lists {
		for page, err := range l.pages(ctx, to.client, args[1]) {
			if err != nil {
				return err
			}
			if page, ok := page.(*v1.ClusteredCacheList); ok {
				caches = append(caches, page.Items...)
			}
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(10) // the product's default
	for i := range caches {
		group.Go(func() error { return p.play(ctx, caches[i].ObjectMeta) })
	}
	return group.Wait()
}

func newPlayer(config *rest.Config, requests []recording.Request) (*player, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	p := &player{server: config.Host, http: &http.Client{Transport: transport}}
	for _, r := range requests {
		if r.Verb() != "list" {
			p.writes = append(p.writes, r)
		}
		if resource, _ := r.Resource(); resource != "clusteredcaches" || r.Body == "" || p.recorded.UID != "" {
			continue
		}
		var body metav1.PartialObjectMetadata
		if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
			return nil, fmt.Errorf("recorded body of %s: %w", r.Path, err)
		}
		p.recorded = body.ObjectMeta
	}
	if p.recorded.UID == "" {
		return nil, fmt.Errorf("the recording has no write with the uid of the cache")
	}
	return p, nil
}

var resourceVersion = regexp.MustCompile(`"resourceVersion":"[0-9]+"`)

// play sends the writes for a cache in the recorded order. A write to the cache
// itself has the resourceVersion of the server's last answer.
func (p *player) play(ctx context.Context, cache metav1.ObjectMeta) error {
	rename := strings.NewReplacer(string(p.recorded.UID), string(cache.UID),
		p.recorded.Name, cache.Name, p.recorded.Namespace, cache.Namespace)
	version := cache.ResourceVersion
	for _, w := range p.writes {
		body := rename.Replace(w.Body)
		resource, _ := w.Resource()
		ofCache := resource == "clusteredcaches"
		if ofCache {
			body = resourceVersion.ReplaceAllString(body, `"resourceVersion":"`+version+`"`)
		}
		answer, err := p.send(ctx, w, rename.Replace(w.Path), body)
		if err != nil {
			return err
		}
		if ofCache {
			var m metav1.PartialObjectMetadata
			if err := json.Unmarshal(answer, &m); err != nil {
				return fmt.Errorf("answer to %s %s: %w", w.Method, w.Path, err)
			}
			version = m.ResourceVersion
		}
	}
	return nil
}

func (p *player) send(ctx context.Context, w recording.Request, path, body string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, w.Method, p.server+path+"?"+w.Query.Encode(), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", w.ContentType)
	r.Header.Set("Accept", w.Accept)
	response, err := p.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s: %s", w.Method, path, response.Status, answer)
	}
	return answer, err
}
