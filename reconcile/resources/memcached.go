package resources

import (
	"slices"
	"strconv"
	"strings"

	v1 "example.com/clusteredcache/api/v1"
)

// memcachedArgs returns the derived arguments, then those of the user. It leaves out
// a derived flag that the user gives. memcached would use the last one, but a pod
// with both would mislead its reader.
func memcachedArgs(spec *v1.ClusteredCacheSpec, port int32) []string {
	given := memcachedFlags(spec.Args)
	var args []string
	if limit := itemMemoryMiB(spec); limit > 0 && !given['m'] {
		args = append(args, "-m", strconv.FormatInt(limit, 10))
	}
	if !given['p'] {
		args = append(args, "-p", strconv.Itoa(int(port)))
	}
	return slices.Concat(args, spec.Args)
}

// itemMemoryMiB returns the memory for items in MiB: 80 % of the memory limit. The
// rest is for connections, threads and the hash table, which memcached does not
// count. It returns 0 without a limit, and memcached then uses its own default (64).
func itemMemoryMiB(spec *v1.ClusteredCacheSpec) int64 {
	limit := spec.Resources.Limits.Memory().Value()
	if limit <= 0 {
		return 0
	}
	const mebibyte = 1 << 20
	return max(1, limit/5*4/mebibyte)
}

// memcachedWithValue has memcached's short options that take a value. The value is
// the rest of the argument, or the next argument.
const memcachedWithValue = "abBcDefIlmnNopPRstuUY"

// memcachedLong has the long names of the derived flags, each with the shortest
// abbreviation that getopt accepts for it.
var memcachedLong = []struct {
	letter         byte
	name, shortest string
}{
	{'m', "memory-limit", "memory-l"},
	{'p', "port", "po"},
}

// memcachedFlags reads args as memcached does. It returns the short letters of the
// options that they give, also for the long names of the derived flags.
func memcachedFlags(args []string) map[byte]bool {
	given := map[byte]bool{}
	for i := 0; i < len(args); i++ {
		long, isLong := strings.CutPrefix(args[i], "--")
		switch {
		case args[i] == "--":
			return given
		case isLong:
			name, _, _ := strings.Cut(long, "=")
			for _, flag := range memcachedLong {
				if strings.HasPrefix(flag.name, name) && strings.HasPrefix(name, flag.shortest) {
					given[flag.letter] = true
				}
			}
		case strings.HasPrefix(args[i], "-"):
			letters := args[i][1:]
			at := strings.IndexAny(letters, memcachedWithValue)
			if at < 0 {
				continue
			}
			given[letters[at]] = true
			if at == len(letters)-1 {
				i++ // the next argument is its value
			}
		}
	}
	return given
}
