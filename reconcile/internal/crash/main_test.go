package crash_test

import (
	"os"
	"testing"

	"example.com/clusteredcache/reconcile/internal/world"
)

func TestMain(m *testing.M) { os.Exit(world.Main(m)) }
