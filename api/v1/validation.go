package v1

import (
	"math"
	"regexp"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Messages of the rules that the API server enforces on a ClusteredCache. The
// markers in types.go repeat them, and a test compares the two.
const (
	MessageName         = "name must be at most 52 characters: a lower-case letter, then lower-case letters, digits or '-', ending in a letter or digit (it names Services and pods)"
	MessageVersion      = "version must be an image tag (letters, digits, '_', '.', '-'; at most 128), tag@sha256:<64 hex digits>, or sha256:<64 hex digits>"
	MessageImage        = "image is a repository without tag or digest, such as registry.example.com/team/cache"
	MessageStorage      = "storage needs engine Custom: memcached keeps nothing on disk"
	MessageImageMissing = "image is required with engine Custom"
	MessageSize         = "should be greater than or equal to 1"
	MessageQuantity     = "is not an amount that a machine can have"
	MessageNegative     = "should be greater than or equal to 0"
	MessageRollout      = "minReadySeconds must be less than progressDeadlineSeconds"
	MessageHookNames    = "every hook needs a name of its own"
	MessageHookAll      = "all stands for every hook: choose another name"
	MessageSizeMaximum  = "should be less than or equal to 1000"
)

// MaxNameLength is the longest name of a cache. The StatefulSet controller appends a
// hash to the name, and both must fit into the 63 characters of a label.
const MaxNameLength = 52

// MaxSize is the largest number of nodes of a cache.
const MaxSize = 1000

// These are compiled at their first use, because most runs do not need them.
var (
	namePattern    = compile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)
	versionPattern = compile(`^([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?|sha256:[0-9a-f]{64})$`)
	imagePattern   = compile(`^([A-Za-z0-9.-]+(:[0-9]+)?/)?[a-z0-9]+([._/-]+[a-z0-9]+)*$`)
)

func compile(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// ValidateName returns what is wrong with the name of a cache. It returns "" if the
// name is valid.
func ValidateName(name string) string {
	if len(name) > MaxNameLength || !namePattern().MatchString(name) {
		return MessageName
	}
	return ""
}

// ValidateSpec returns what is wrong with a spec, as "path: message". It returns ""
// if the spec is valid. The API server enforces the same rules when a spec is
// written. But a spec that was stored before a rule existed may break it.
func ValidateSpec(s *ClusteredCacheSpec) string {
	switch {
	case s.Size < 1:
		return "spec.size: " + MessageSize
	case s.Size > MaxSize:
		return "spec.size: " + MessageSizeMaximum
	case !versionPattern().MatchString(s.Version):
		return "spec.version: " + MessageVersion
	case s.Image != "" && !imagePattern().MatchString(s.Image):
		return "spec.image: " + MessageImage
	case s.Engine == EngineCustom && s.Image == "":
		return "spec.image: " + MessageImageMissing
	case s.Engine != EngineCustom && s.Storage != nil:
		return "spec.storage: " + MessageStorage
	case s.Storage != nil && isAbsurd(s.Storage.Size):
		return "spec.storage.size: " + MessageQuantity
	}
	if r := s.Rollout; r != nil {
		switch {
		case r.ProgressDeadlineSeconds < 0:
			return "spec.rollout.progressDeadlineSeconds: " + MessageSize
		case r.MinReadySeconds < 0:
			return "spec.rollout.minReadySeconds: " + MessageNegative
		case r.MinReadySeconds > 0 && time.Duration(r.MinReadySeconds)*time.Second >= s.ProgressDeadline():
			return "spec.rollout: " + MessageRollout
		}
	}
	if hasAbsurd(s.Resources) {
		return "spec.resources: " + MessageQuantity
	}
	if s.Deletion != nil {
		return validateHooks(s.Deletion.Hooks)
	}
	return ""
}

func validateHooks(hooks []Hook) string {
	names := map[string]bool{}
	for _, h := range hooks {
		switch {
		case h.Name == SkipAllHooks:
			return "spec.deletion.hooks: " + MessageHookAll
		case names[h.Name]:
			return "spec.deletion.hooks: " + MessageHookNames
		case hasAbsurd(h.Resources):
			return "spec.deletion.hooks[" + h.Name + "].resources: " + MessageQuantity
		}
		names[h.Name] = true
	}
	return ""
}

func hasAbsurd(r corev1.ResourceRequirements) bool {
	for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
		for _, q := range list {
			if isAbsurd(q) {
				return true
			}
		}
	}
	return false
}

// isAbsurd reports whether a quantity needs more than 64 bits. With an exponent of
// millions, exact arithmetic takes minutes and gigabytes, even for one comparison.
func isAbsurd(q resource.Quantity) bool {
	f := math.Abs(q.AsApproximateFloat64())
	return f >= math.MaxInt64 || f > 0 && f < 1e-9
}
