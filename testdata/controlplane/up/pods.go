package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const podWorkers = 4

// podRange is disjoint from the range of Services and large enough that no
// address is given twice.
var podRange = netip.MustParsePrefix("10.128.0.0/9")

// podMarker stands in for the kubelets: it writes the status of pods, which run
// nowhere.
type podMarker struct {
	client kubernetes.Interface
	pods   corelisters.PodLister
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	// scheduled: only pods that a scheduler has given a node are marked.
	scheduled bool

	mu     sync.Mutex
	lastIP netip.Addr
}

// markPods gives every pod its status, delay after the pod was made or changed,
// until ctx is done; with a scheduler, those alone that have a node.
func markPods(ctx context.Context, client kubernetes.Interface, o options) {
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Pods()
	m := &podMarker{
		client: client,
		pods:   informer.Lister(),
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
		lastIP: podRange.Addr(),

		scheduled: o.scheduler,
	}
	defer m.queue.ShutDown()
	enqueue := func(object any) {
		m.queue.AddAfter(cache.MetaObjectToName(object.(*corev1.Pod)), o.podDelay)
	}
	// A pod without a node is deleted at once, so there is nothing to do for it.
	_, _ = informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	m.skipUsedIPs()
	for range podWorkers {
		go m.work(ctx)
	}
	<-ctx.Done()
}

func (m *podMarker) work(ctx context.Context) {
	for {
		name, shutdown := m.queue.Get()
		if shutdown {
			return
		}
		if err := m.mark(ctx, name); err != nil && ctx.Err() == nil {
			fmt.Fprintf(os.Stderr, "up: mark pod %s: %v\n", name, err)
			m.queue.AddRateLimited(name)
		} else {
			m.queue.Forget(name)
		}
		m.queue.Done(name)
	}
}

func (m *podMarker) mark(ctx context.Context, name cache.ObjectName) error {
	pod, err := m.pods.Pods(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if pod.DeletionTimestamp != nil {
		return m.finishDeletion(ctx, pod)
	}
	if m.scheduled && pod.Spec.NodeName == "" {
		return nil
	}
	status, changed := nextStatus(pod, metav1.Now().Rfc3339Copy())
	if !changed {
		return nil
	}
	pod = pod.DeepCopy() // the lister's is shared
	pod.Status = *status
	if pod.Status.PodIP == "" && pod.Status.Phase != corev1.PodPending {
		pod.Status.PodIP = m.nextIP()
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	}
	_, err = m.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // deleted, or changed: then the change comes back as an event
	}
	return err
}

// finishDeletion says, as a kubelet does, that a pod on a node has ended.
func (m *podMarker) finishDeletion(ctx context.Context, pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" {
		return nil
	}
	now := int64(0)
	err := m.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now,
		Preconditions:      &metav1.Preconditions{UID: &pod.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (m *podMarker) nextIP() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastIP = m.lastIP.Next()
	return m.lastIP.String()
}

// skipUsedIPs continues after the addresses of an earlier run in the same state
// directory.
func (m *podMarker) skipUsedIPs() {
	pods, _ := m.pods.List(labels.Everything()) // reads memory and cannot fail
	for _, pod := range pods {
		ip, err := netip.ParseAddr(pod.Status.PodIP)
		if err == nil && podRange.Contains(ip) && m.lastIP.Less(ip) {
			m.lastIP = ip
		}
	}
}
