// The shapes in which Kubernetes objects travel through the operator: raw JSON with only the metadata
// typed, so that fields which this version does not know survive a read and a write.
// Nothing here talks to the API server or validates a spec; kinds of our own are parsed by crds/.

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly [field: string]: unknown;
}

export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** A kind as the API server serves it; `group` is empty for the core group. */
export interface ApiResource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly isNamespaced: boolean;
}

/** One object's address. `namespace` is absent for cluster-scoped kinds. */
export interface ObjectRef {
  readonly resource: ApiResource;
  readonly name: string;
  readonly namespace?: string;
}

export const CONFIG_MAPS = coreResource('ConfigMap', 'configmaps', true);
export const NAMESPACES = coreResource('Namespace', 'namespaces', false);
export const PODS = coreResource('Pod', 'pods', true);
export const LEASES: ApiResource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  isNamespaced: true,
};
export const EVENTS: ApiResource = {
  group: 'events.k8s.io',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  isNamespaced: true,
};

function coreResource(kind: string, plural: string, isNamespaced: boolean): ApiResource {
  return { group: '', version: 'v1', kind, plural, isNamespaced };
}

export function apiVersionOf(resource: ApiResource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/** The key under which informers and queues know an object: `namespace/name`, or `name` when cluster-scoped. */
export function objectKey(object: { readonly metadata: ObjectMeta }): string {
  return namespacedKey(object.metadata.name, object.metadata.namespace);
}

export function namespacedKey(name: string, namespace?: string): string {
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

/** The reverse of `namespacedKey`. Neither part can hold a slash. */
export function splitKey(key: string): { readonly name: string; readonly namespace?: string } {
  const slash = key.indexOf('/');
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}

export interface PathParts {
  readonly namespace?: string;
  readonly name?: string;
  readonly subresource?: string;
}

/** The URL path of a collection or an object; every variable part is percent-encoded. */
export function resourcePath(resource: ApiResource, parts: PathParts = {}): string {
  const root =
    resource.group === ''
      ? `/api/${resource.version}`
      : `/apis/${resource.group}/${resource.version}`;
  const namespace = parts.namespace === undefined ? [] : ['namespaces', parts.namespace];
  const name = parts.name === undefined ? [] : [parts.name];
  const subresource = parts.subresource === undefined ? [] : [parts.subresource];
  return [
    root,
    ...[...namespace, resource.plural, ...name, ...subresource].map(encodeURIComponent),
  ].join('/');
}
