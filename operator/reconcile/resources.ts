// The kinds that the operator reads and writes, as the API server names them.

import { API_GROUP, API_VERSION, KIND_DEFINITIONS, type Kind } from '#crds/custom-resource.ts';
import type { ApiResource } from '#operator/kube/kube-object.ts';

function ownKind(kind: Kind): ApiResource {
  return {
    group: API_GROUP,
    version: API_VERSION,
    kind,
    plural: KIND_DEFINITIONS[kind].plural,
    isNamespaced: true,
  };
}

export const MCP_SERVERS = ownKind('McpServer');
export const MCP_BINDINGS = ownKind('McpBinding');
