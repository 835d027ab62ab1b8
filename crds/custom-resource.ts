// The two kinds as custom resource definitions: names, columns, subresources and the schema.
// Pure: generate.ts writes what this returns.

import {
  BINDING_NAME_MAX_LENGTH,
  mcpBindingSpecSchema,
  mcpBindingStatusSchema,
} from './mcp-binding.ts';
import { mcpServerSpecSchema, mcpServerStatusSchema } from './mcp-server.ts';
import { crdSchema } from './crd-schema.ts';
import type { JsonObject } from './crd-schema.ts';
import { INITIAL_STATUS } from './status-schema.ts';
import { structuralSchema } from './structural-schema.ts';
import type { StructuralSchema } from './structural-schema.ts';

export const API_GROUP = 'fairlead.dev';
export const API_VERSION = 'v1alpha1';
export const GROUP_VERSION = `${API_GROUP}/${API_VERSION}`;
export const KINDS = ['McpServer', 'McpBinding'] as const;
export type Kind = (typeof KINDS)[number];

interface Column {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'boolean' | 'date';
  readonly jsonPath: string;
  readonly description: string;
  /** 1: only with `-o wide`. */
  readonly priority?: 1;
}

export interface KindDefinition {
  readonly kind: Kind;
  readonly plural: string;
  readonly shortName: string;
  readonly description: string;
  readonly nameMaxLength: number;
  readonly spec: StructuralSchema;
  readonly status: StructuralSchema;
  readonly columns: readonly Column[];
}

const readyColumns: readonly Column[] = [
  {
    name: 'Ready',
    type: 'string',
    jsonPath: '.status.conditions[?(@.type=="Ready")].status',
    description: 'Whether everything is in order.',
  },
  {
    name: 'Reason',
    type: 'string',
    jsonPath: '.status.conditions[?(@.type=="Ready")].reason',
    description: 'Why, in one word.',
  },
];
const ageColumn: Column = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'When it was created.',
};

export const KIND_DEFINITIONS: Readonly<Record<Kind, KindDefinition>> = {
  McpServer: {
    kind: 'McpServer',
    plural: 'mcpservers',
    shortName: 'flsrv',
    description:
      'A remote MCP server: who it is, what may be reached for it, which of its tools may be used.',
    nameMaxLength: 253,
    spec: structuralSchema(mcpServerSpecSchema, 'McpServer.spec'),
    status: structuralSchema(mcpServerStatusSchema, 'McpServer.status'),
    columns: [
      {
        name: 'Endpoint',
        type: 'string',
        jsonPath: '.spec.endpoint',
        description: 'URL of the MCP endpoint.',
      },
      ...readyColumns,
      {
        name: 'Authorization',
        type: 'string',
        jsonPath: '.spec.authorization.type',
        description: 'How the server wants to be authorized.',
        priority: 1,
      },
      {
        name: 'Era',
        type: 'string',
        jsonPath: '.spec.protocol.era',
        description: 'Which protocol era may be spoken.',
        priority: 1,
      },
      {
        name: 'Suspended',
        type: 'boolean',
        jsonPath: '.spec.suspend',
        description: 'Whether it is taken out of every binding.',
        priority: 1,
      },
      {
        name: 'Bindings',
        type: 'integer',
        jsonPath: '.status.bindingCount',
        description: 'Bindings that use it.',
        priority: 1,
      },
      ageColumn,
    ],
  },
  McpBinding: {
    kind: 'McpBinding',
    plural: 'mcpbindings',
    shortName: 'flbind',
    description: 'Which workload may use which MCP servers, as whom, and how its sidecar runs.',
    nameMaxLength: BINDING_NAME_MAX_LENGTH,
    spec: structuralSchema(mcpBindingSpecSchema, 'McpBinding.spec'),
    status: structuralSchema(mcpBindingStatusSchema, 'McpBinding.status'),
    columns: [
      {
        name: 'User',
        type: 'string',
        jsonPath: '.spec.user.static.id',
        description: 'Account of everyone who reaches the pod.',
      },
      ...readyColumns,
      {
        name: 'Revision',
        type: 'string',
        jsonPath: '.status.configRevision',
        description: 'Revision of the rendered config.',
        priority: 1,
      },
      ageColumn,
    ],
  },
};

const IDENTITY_FIELDS = {
  apiVersion: { type: 'string', description: `Always ${GROUP_VERSION}.` },
  kind: { type: 'string', description: 'The kind of the object.' },
} as const;

export function customResourceDefinition(definition: KindDefinition): JsonObject {
  const { kind, plural, shortName } = definition;
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${plural}.${API_GROUP}`,
      labels: { 'app.kubernetes.io/part-of': 'fairlead' },
    },
    spec: {
      group: API_GROUP,
      scope: 'Namespaced',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [shortName],
        categories: ['fairlead'],
      },
      versions: [
        {
          name: API_VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: definition.columns,
          schema: { openAPIV3Schema: rootSchema(definition) },
        },
      ],
    },
  };
}

function rootSchema({ description, nameMaxLength, spec, status }: KindDefinition): JsonObject {
  return {
    type: 'object',
    description,
    required: ['spec'],
    properties: {
      ...IDENTITY_FIELDS,
      metadata: {
        type: 'object',
        properties: { name: { type: 'string', maxLength: nameMaxLength } },
      },
      spec: crdSchema(spec),
      status: { ...crdSchema(status), default: INITIAL_STATUS },
    },
  };
}
