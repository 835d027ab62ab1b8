// Conditions as kstatus and Gateway API read them, shared by the statuses of both kinds. Only the
// operator writes a status.

import { z } from 'zod';

import { choice, list, mapBy, text } from './field-schemas.ts';

const CONDITION_REASON = {
  max: 1024,
  pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
};

const generation = (description: string, min: number): z.ZodInt =>
  z.int().min(min).describe(description);

export const conditionSchema = z
  .strictObject({
    type: text('Type of the condition, for example Ready.', { max: 316 }),
    status: choice('True, False or Unknown.', ['True', 'False', 'Unknown']),
    observedGeneration: generation(
      'Generation of the spec that this condition speaks of.',
      0,
    ).optional(),
    lastTransitionTime: z.iso
      .datetime({ offset: true })
      .describe('When the condition last changed.'),
    reason: text('Why, in one word.', CONDITION_REASON),
    message: text('Why, in a sentence.', { min: 0, max: 32_768 }),
  })
  .describe('One observation about the object.');

export type Condition = z.output<typeof conditionSchema>;

/** The fields that every status begins with. */
export const statusFields = {
  observedGeneration: generation(
    'Generation of the spec that the operator has seen; -1 before the first time.',
    -1,
  ).optional(),
  conditions: list(
    'Observations: Accepted, ResolvedRefs, Programmed, Ready; Reconciling and Stalled while they are True.',
    conditionSchema,
    {
      max: 16,
      kind: mapBy('type'),
    },
  ).optional(),
} as const;

/** What the API server puts into a new object. */
export const INITIAL_STATUS = { observedGeneration: -1 } as const;
export { CONDITION_REASON };
