// Offline validation of one object, with the API server's verdict: the same fields refused at the
// same paths, the same defaults applied. The operator reads what it watched through this too,
// `fairlead validate`, `dev` and `render` read files. It judges one object alone: whether what it
// refers to exists is the reconciler's question.

import type { z } from 'zod';

import { formatPath } from '#core/config/sidecar-config.ts';
import { wireMessage } from '#core/errors.ts';
import type { ErrorCode } from '#core/errors.ts';

import { checkRules } from './check-rules.ts';
import { GROUP_VERSION, KINDS, KIND_DEFINITIONS } from './custom-resource.ts';
import type { Kind, KindDefinition } from './custom-resource.ts';
import { describeIssue } from './describe-issue.ts';
import { mcpBindingSpecSchema, mcpBindingStatusSchema } from './mcp-binding.ts';
import type { McpBindingSpec, McpBindingStatus } from './mcp-binding.ts';
import { mcpServerSpecSchema, mcpServerStatusSchema } from './mcp-server.ts';
import type { McpServerSpec, McpServerStatus } from './mcp-server.ts';
import { METADATA_FIELDS, objectMetadataSchema } from './object-metadata.ts';
import type { ObjectMetadata } from './object-metadata.ts';
import { isPlainObject, pruneObject } from './prune-object.ts';
import type { Condition } from './status-schema.ts';

interface Resource<K extends Kind, Spec, Status> {
  readonly apiVersion: typeof GROUP_VERSION;
  readonly kind: K;
  readonly metadata: ObjectMetadata;
  readonly spec: Spec;
  /** As written by the operator, or as the API server puts it into a new object. */
  readonly status: Omit<Status, 'observedGeneration' | 'conditions'> & {
    readonly observedGeneration: number;
    readonly conditions: readonly Condition[];
  };
}

export type McpServer = Resource<'McpServer', McpServerSpec, McpServerStatus>;
export type McpBinding = Resource<'McpBinding', McpBindingSpec, McpBindingStatus>;
export type FairleadObject = McpServer | McpBinding;

export interface ObjectIssue {
  /** `spec.limits.maxConcurrency`; empty for the object itself. */
  readonly path: string;
  readonly message: string;
  readonly code: Extract<ErrorCode, 'CONFIG_INVALID' | 'NOT_SUPPORTED'>;
}

export type ObjectVerdict =
  | {
      readonly kind: 'ok';
      readonly object: FairleadObject;
      /** Valid values that this version does not act on: `Accepted=False/NotSupported`, an error of `validate`. */
      readonly unsupported: readonly ObjectIssue[];
    }
  | { readonly kind: 'invalid'; readonly issues: readonly ObjectIssue[] };

export interface ValidateOptions {
  /** `fairlead dev`: loopback remotes over plain http are accepted. */
  readonly development: boolean;
  /** Files: refuse, like the API server's strict field validation. Watched objects: ignore, like its pruning. */
  readonly unknownFields: 'refuse' | 'ignore';
}

interface KindSchemas {
  readonly spec: z.ZodType;
  readonly status: z.ZodType<McpServerStatus | McpBindingStatus>;
}

const SCHEMAS: Readonly<Record<Kind, KindSchemas>> = {
  McpServer: { spec: mcpServerSpecSchema, status: mcpServerStatusSchema },
  McpBinding: { spec: mcpBindingSpecSchema, status: mcpBindingStatusSchema },
};

const ROOT_FIELDS = ['apiVersion', 'kind', 'metadata', 'spec', 'status'];

/** Whether an object is meant to be one of ours, whatever its version. */
export function isFairleadKind(input: unknown): boolean {
  return (
    isPlainObject(input) &&
    typeof input['apiVersion'] === 'string' &&
    input['apiVersion'].startsWith('fairlead.dev/')
  );
}

export function validateObject(input: unknown, options: ValidateOptions): ObjectVerdict {
  const identity = readIdentity(input);
  if (identity.kind === 'invalid') return identity;
  const { root, definition } = identity;
  const unknownFields = options.unknownFields === 'refuse' ? unknownRootFields(root) : [];
  const metadata = parseMetadata(root['metadata'], definition);
  const spec = parseSpec(root['spec'], definition, options);
  const issues = [
    ...[...unknownFields, ...(options.unknownFields === 'refuse' ? spec.unknownFields : [])].map(
      (path) => invalid(path, 'is not a field'),
    ),
    ...metadata.issues,
    ...spec.issues,
  ];
  if (issues.length > 0 || metadata.value === undefined) return { kind: 'invalid', issues };
  // The zod schema of this kind has made spec and status what the type says.
  const object = {
    apiVersion: GROUP_VERSION,
    kind: definition.kind,
    metadata: metadata.value,
    spec: spec.value,
    status: parseStatus(root['status'], definition),
  } as FairleadObject;
  return { kind: 'ok', object, unsupported: [...findUnsupported(object)] };
}

type Identity =
  | {
      readonly kind: 'ok';
      readonly root: Readonly<Record<string, unknown>>;
      readonly definition: KindDefinition;
    }
  | Extract<ObjectVerdict, { kind: 'invalid' }>;

function readIdentity(input: unknown): Identity {
  if (!isPlainObject(input)) return { kind: 'invalid', issues: [invalid('', 'must be an object')] };
  const issues: ObjectIssue[] = [];
  if (input['apiVersion'] !== GROUP_VERSION)
    issues.push(invalid('apiVersion', `must be "${GROUP_VERSION}"`));
  const kind = KINDS.find((known) => known === input['kind']);
  if (kind === undefined)
    issues.push(invalid('kind', `must be one of ${KINDS.map((known) => `"${known}"`).join(', ')}`));
  if (kind === undefined || issues.length > 0) return { kind: 'invalid', issues };
  return { kind: 'ok', root: input, definition: KIND_DEFINITIONS[kind] };
}

function unknownRootFields(root: Readonly<Record<string, unknown>>): readonly string[] {
  const metadata = isPlainObject(root['metadata']) ? Object.keys(root['metadata']) : [];
  return [
    ...Object.keys(root).filter((key) => !ROOT_FIELDS.includes(key)),
    ...metadata.filter((key) => !METADATA_FIELDS.includes(key)).map((key) => `metadata.${key}`),
  ];
}

interface Parsed<T> {
  readonly value: T | undefined;
  readonly issues: readonly ObjectIssue[];
}

function parseMetadata(input: unknown, { nameMaxLength }: KindDefinition): Parsed<ObjectMetadata> {
  const known = isPlainObject(input)
    ? Object.fromEntries(
        Object.entries(input).filter(
          ([key, value]) => METADATA_FIELDS.includes(key) && value !== null,
        ),
      )
    : input;
  const parsed = objectMetadataSchema.safeParse(known);
  if (!parsed.success)
    return { value: undefined, issues: issuesOf(parsed.error, 'metadata', known) };
  const isTooLong = parsed.data.name.length > nameMaxLength;
  return {
    value: parsed.data,
    issues: isTooLong
      ? [invalid('metadata.name', `must have at most ${nameMaxLength} characters`)]
      : [],
  };
}

function parseSpec(
  input: unknown,
  { kind, spec }: KindDefinition,
  options: ValidateOptions,
): Parsed<unknown> & { readonly unknownFields: readonly string[] } {
  const { value, unknownFields } = pruneObject(spec, input ?? undefined, 'spec');
  const parsed = SCHEMAS[kind].spec.safeParse(value);
  if (!parsed.success)
    return { value: undefined, unknownFields, issues: issuesOf(parsed.error, 'spec', value) };
  const faults = [...checkRules(spec, parsed.data, { path: 'spec', options })];
  return {
    value: parsed.data,
    unknownFields,
    issues: faults.map(({ path, message }) => invalid(path, message)),
  };
}

/** The operator wrote it, perhaps an older or newer one: what cannot be read counts as not written. */
function parseStatus(input: unknown, { kind, status }: KindDefinition): FairleadObject['status'] {
  const parsed = SCHEMAS[kind].status.safeParse(pruneObject(status, input ?? {}, 'status').value);
  const written = parsed.success ? parsed.data : {};
  return {
    ...written,
    observedGeneration: written.observedGeneration ?? -1,
    conditions: written.conditions ?? [],
  };
}

/** The first issue of each field: the others mostly follow from it. */
function issuesOf(error: z.core.$ZodError, root: string, value: unknown): readonly ObjectIssue[] {
  const byPath = new Map<string, ObjectIssue>();
  for (const issue of error.issues) {
    const path = formatPath([root, ...issue.path]);
    if (!byPath.has(path))
      byPath.set(
        path,
        invalid(path, describeIssue(issue, valueAt(value, issue.path) === undefined)),
      );
  }
  return [...byPath.values()];
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root;
  for (const part of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Readonly<Record<PropertyKey, unknown>>)[part];
  }
  return value;
}

function invalid(path: string, message: string): ObjectIssue {
  return { path, message, code: 'CONFIG_INVALID' };
}

function* findUnsupported(object: FairleadObject): Generator<ObjectIssue> {
  if (object.kind === 'McpServer' && object.spec.authorization.type !== 'None') {
    yield {
      path: 'spec.authorization.type',
      message: wireMessage('NOT_SUPPORTED', `Only "None" works so far.`),
      code: 'NOT_SUPPORTED',
    };
  }
}
