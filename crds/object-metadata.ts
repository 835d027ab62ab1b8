// Kubernetes' own metadata, as far as files and the operator use it. The API server checks it by
// itself; this repeats those checks for offline validation. Fields that only the API server writes
// are accepted, so that the output of `kubectl get -o yaml` validates.

import { z } from 'zod';

import {
  DNS_LABEL_PATTERN,
  DNS_SUBDOMAIN_PATTERN,
  LABEL_KEY_PATTERN,
  LABEL_VALUE_PATTERN,
} from './field-schemas.ts';

const LABEL_KEY = new RegExp(LABEL_KEY_PATTERN);

const name = z
  .string()
  .max(253, 'must have at most 253 characters')
  .regex(
    new RegExp(DNS_SUBDOMAIN_PATTERN),
    'must be lower-case letters, digits, "-" and ".", beginning and ending with a letter or digit',
  );

const labels = z
  .record(
    z.string(),
    z.string().max(63).regex(new RegExp(LABEL_VALUE_PATTERN), 'must be a Kubernetes label value'),
  )
  .refine(
    (map) => Object.keys(map).every((key) => LABEL_KEY.test(key)),
    'must have keys that are Kubernetes label keys',
  );

const annotations = z
  .record(z.string(), z.string())
  .refine(
    (map) => Object.keys(map).every((key) => LABEL_KEY.test(key.toLowerCase())),
    'must have keys that are Kubernetes annotation keys',
  );

export const objectMetadataSchema = z.strictObject({
  name,
  namespace: z
    .string()
    .max(63)
    .regex(new RegExp(DNS_LABEL_PATTERN), 'must be lower-case letters, digits and "-"')
    .optional(),
  labels: labels.optional(),
  annotations: annotations.optional(),
  uid: z.string().optional(),
  resourceVersion: z.string().optional(),
  generation: z.int().optional(),
  creationTimestamp: z.string().optional(),
  deletionTimestamp: z.string().optional(),
  deletionGracePeriodSeconds: z.unknown().optional(),
  generateName: z.unknown().optional(),
  selfLink: z.unknown().optional(),
  finalizers: z.unknown().optional(),
  ownerReferences: z.unknown().optional(),
  managedFields: z.unknown().optional(),
});

export type ObjectMetadata = z.output<typeof objectMetadataSchema>;

export const METADATA_FIELDS: readonly string[] = Object.keys(objectMetadataSchema.shape);
