// Package kube finds the cluster a run is meant for and connects to it: which
// kubeconfig counts, which identity and namespace it gives, the client with
// the few kinds we use, and, when the cluster says no, a sentence that says
// what to do about it.
//
//	flags, KUBECONFIG, pod, ~/.kube/config --Load--> Target --NewClient--> client.Client
//	                                                   \_____Explain(err)__> one sentence
//
// Connecting sends no request: kinds and resources are fixed (Scheme, Mapper),
// so there is no discovery, and a Target is made of local files only.
package kube
