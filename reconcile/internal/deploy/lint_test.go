package deploy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
)

var components = []string{"namespaces", "sharded", "network-policy", "diff-only"}

// starting is what the time between a tick and our first line is allowed to be:
// scheduling, pulling a small image, starting.
const starting = 15 * time.Second

func cronJob(t *testing.T, manifests string) (*batchv1.CronJob, *corev1.Container) {
	t.Helper()
	c := &batchv1.CronJob{}
	one(t, manifests, "CronJob", c)
	return c, &c.Spec.JobTemplate.Spec.Template.Spec.Containers[0]
}

// The numbers of the CronJob fit together: a pass ends by itself before it is
// ended, and that before the next one is due.
func TestCronJobTimes(t *testing.T) {
	c, container := cronJob(t, kustomize(t))
	job, pod := c.Spec.JobTemplate.Spec, c.Spec.JobTemplate.Spec.Template.Spec

	linger := duration(t, flag(t, container, "--linger="))
	grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second
	deadline := time.Duration(*job.ActiveDeadlineSeconds) * time.Second
	period := minutes(t, c.Spec.Schedule)
	if starting+linger+grace >= deadline || deadline >= period {
		t.Errorf("start %s + linger %s + grace %s < deadline %s < period %s does not hold", starting, linger, grace, deadline, period)
	}
	if s := c.Spec.StartingDeadlineSeconds; s == nil || *s < 10 || time.Duration(*s)*time.Second > period {
		t.Errorf("startingDeadlineSeconds: below 10 the controller may miss every start, above the period it starts two in a row")
	}
	if c.Spec.ConcurrencyPolicy != batchv1.ForbidConcurrent {
		t.Errorf("concurrencyPolicy %s", c.Spec.ConcurrencyPolicy)
	}
	if s, f := c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit; s == nil || f == nil || *s > 1 || *f > 3 || *f < 1 {
		t.Errorf("history limits")
	}
	if *job.BackoffLimit != 0 || job.TTLSecondsAfterFinished == nil || pod.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("a failed pass is not to be repeated but by the next: %+v", job)
	}
	rules := job.PodFailurePolicy.Rules
	if len(rules) != 1 || rules[0].Action != batchv1.PodFailurePolicyActionIgnore || rules[0].OnPodConditions[0].Type != corev1.DisruptionTarget {
		t.Errorf("pod failure policy %+v", rules)
	}
	if flag(t, container, "--fail-on=") != "failed" {
		t.Errorf("a stalled cache must not make every pass a failed Job")
	}
}

func flag(t *testing.T, c *corev1.Container, name string) string {
	t.Helper()
	var values []string
	for _, arg := range c.Args {
		if value, ok := strings.CutPrefix(arg, name); ok {
			values = append(values, value)
		}
	}
	if len(values) != 1 {
		t.Fatalf("%s: %v in %v", name, values, c.Args)
	}
	return values[0]
}

func duration(t *testing.T, s string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// minutes is the period of a schedule "*/N * * * *".
func minutes(t *testing.T, schedule string) time.Duration {
	t.Helper()
	m := regexp.MustCompile(`^\*/(\d+) \* \* \* \*$`).FindStringSubmatch(schedule)
	if m == nil {
		t.Fatalf("schedule %q", schedule)
	}
	n, _ := strconv.Atoi(m[1])
	return time.Duration(n) * time.Minute
}

func TestCronJobSecurity(t *testing.T) {
	c, container := cronJob(t, kustomize(t))
	pod := c.Spec.JobTemplate.Spec.Template.Spec
	if s := pod.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser != 65532 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("pod: %+v", s)
	}
	if s := container.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("container: %+v", s)
	}
	limit, request := container.Resources.Limits.Memory(), container.Resources.Requests.Memory()
	if limit.Cmp(resource.MustParse("128Mi")) < 0 || request.IsZero() || container.Resources.Requests.Cpu().IsZero() {
		t.Errorf("resources %+v", container.Resources)
	}
	if e := container.Env[0]; e.Name != "GOMEMLIMIT" || e.ValueFrom.ResourceFieldRef.Resource != "limits.memory" {
		t.Errorf("GOMEMLIMIT does not follow the limit: %+v", e)
	}
	if container.TerminationMessagePolicy != corev1.TerminationMessageFallbackToLogsOnError ||
		!slices.Contains(container.Args, "--output=text=/dev/termination-log") {
		t.Errorf("the summary is not in the termination message")
	}
}

// Each part of the fleet is done by one pod, whichever number of them is set.
func TestShardsAreComplete(t *testing.T) {
	c, container := cronJob(t, kustomize(t, "sharded"))
	job := c.Spec.JobTemplate.Spec
	if want := fmt.Sprintf("$(JOB_COMPLETION_INDEX)/%d", *job.Completions); flag(t, container, "--shard=") != want {
		t.Errorf("--shard=%s with %d completions", flag(t, container, "--shard="), *job.Completions)
	}
	if *job.Parallelism != *job.Completions || *job.CompletionMode != batchv1.IndexedCompletion ||
		*job.BackoffLimitPerIndex != 0 || job.BackoffLimit != nil {
		t.Errorf("%+v", job)
	}
}

func TestNamespacesHaveRolesOnly(t *testing.T) {
	manifests := kustomize(t, "namespaces")
	roles := map[string]bool{}
	for _, o := range objects(t, manifests) {
		switch {
		case o.GetName() != "clusteredcache":
		case o.GetKind() == "Role":
			roles[o.GetNamespace()] = true
		case o.GetKind() == "ClusterRole" || o.GetKind() == "ClusterRoleBinding":
			t.Errorf("there is a %s", o.GetKind())
		}
	}
	_, container := cronJob(t, manifests)
	for _, arg := range container.Args {
		if ns, ok := strings.CutPrefix(arg, "--namespace="); ok && !roles[ns] {
			t.Errorf("%s has no Role there", arg)
		} else if ok {
			delete(roles, ns)
		}
	}
	if len(roles) > 0 {
		t.Errorf("Roles without a flag: %v", roles)
	}
}

func TestNetworkPolicy(t *testing.T) {
	manifests := kustomize(t, "network-policy")
	p := &networkingv1.NetworkPolicy{}
	one(t, manifests, "NetworkPolicy", p)
	c, _ := cronJob(t, manifests)
	for k, v := range p.Spec.PodSelector.MatchLabels {
		if c.Spec.JobTemplate.Spec.Template.Labels[k] != v {
			t.Errorf("the policy is not that of our pods: %s", k)
		}
	}
	var ports []string
	for _, rule := range p.Spec.Egress {
		for _, port := range rule.Ports {
			ports = append(ports, fmt.Sprintf("%s %s", *port.Protocol, port.Port))
		}
	}
	if want := []string{"UDP 53", "TCP 53", "TCP 443", "TCP 6443"}; !slices.Equal(ports, want) || len(p.Spec.Ingress) > 0 || len(p.Spec.PolicyTypes) != 2 {
		t.Errorf("%v, %+v", ports, p.Spec)
	}
}

// No role that is shipped has a wildcard, Secrets, or a way into pods.
func TestRightsAreNarrow(t *testing.T) {
	for _, c := range append(components, "") {
		manifests := kustomize(t, strings.Fields(c)...)
		for _, o := range objects(t, manifests) {
			if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
				continue
			}
			role := &rbacv1.ClusterRole{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, role); err != nil {
				t.Fatal(err)
			}
			for _, rule := range role.Rules {
				narrow(t, role.Name, rule)
			}
		}
	}
}

func narrow(t *testing.T, role string, rule rbacv1.PolicyRule) {
	t.Helper()
	words := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs)
	for _, word := range words {
		if strings.Contains(word, "*") || slices.Contains([]string{"secrets", "pods/exec", "pods/attach", "pods/portforward", "escalate", "bind"}, word) {
			t.Errorf("%s: %s in %+v", role, word, rule)
		}
	}
	if slices.Contains(rule.Verbs, "impersonate") && len(rule.ResourceNames) == 0 {
		t.Errorf("%s may act as anybody", role)
	}
}
