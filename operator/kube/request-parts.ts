// Pure: the parts of requests to the API server that its verbs share: paths, queries, Accept headers, and
// the kind that an answer is given back.

import type { SelectOptions, WriteOptions } from './kube-client-options.ts';
import { apiVersionOf, resourcePath } from './kube-object.ts';
import type { ApiResource, KubeObject, ObjectRef } from './kube-object.ts';

/** Items of typed lists come without kind, and metadata-only ones with another: all get their own back. */
export function named(resource: ApiResource, object: KubeObject): KubeObject {
  const apiVersion = apiVersionOf(resource);
  if (object.kind === resource.kind && object.apiVersion === apiVersion) return object;
  return { ...object, apiVersion, kind: resource.kind };
}

export function refOf(resource: ApiResource, object: KubeObject): ObjectRef {
  const { name, namespace } = object.metadata;
  return { resource, name, ...(namespace === undefined ? {} : { namespace }) };
}

export function pathOf(ref: ObjectRef, subresource?: string): string {
  if (ref.resource.isNamespaced && ref.namespace === undefined)
    throw new TypeError(`${ref.resource.plural} needs a namespace`);
  return resourcePath(ref.resource, {
    ...namespacePart(ref.resource, ref.namespace),
    name: ref.name,
    ...(subresource === undefined ? {} : { subresource }),
  });
}

export function namespacePart(
  resource: ApiResource,
  namespace: string | undefined,
): { namespace?: string } {
  return resource.isNamespaced && namespace !== undefined ? { namespace } : {};
}

export function selectorQuery(options: SelectOptions): Record<string, string | undefined> {
  return { labelSelector: options.labelSelector, fieldSelector: options.fieldSelector };
}

export function writeQuery(
  options: Omit<WriteOptions, 'subresource'>,
): Record<string, string | undefined> {
  return {
    dryRun: options.isDryRun === true ? 'All' : undefined,
    fieldValidation: options.fieldValidation,
  };
}

export function acceptFor(metadataKind: string, options: SelectOptions): string {
  return options.isMetadataOnly === true
    ? `application/json;as=${metadataKind};g=meta.k8s.io;v=v1`
    : 'application/json';
}
