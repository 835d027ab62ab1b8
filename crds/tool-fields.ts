// Tool names and patterns, as both kinds write them.

import type { z } from 'zod';

import { TOOL_PATTERN_PATTERN } from '#core/config/sidecar-config.ts';

import { SET, list, text } from './field-schemas.ts';

export const TOOL_NAME_PATTERN = '^[A-Za-z0-9_./-]{1,128}$';

export function toolName(description: string): z.ZodString {
  return text(description, {
    max: 128,
    pattern: TOOL_NAME_PATTERN,
    hint: 'must be a tool name: letters, digits, "_", "-", "." and "/"',
  });
}

const toolPattern = text('A tool name; "*" stands for any characters.', {
  max: 128,
  pattern: TOOL_PATTERN_PATTERN,
  hint: 'must be a tool name or a pattern: letters, digits, "_", "-", ".", "/" and "*"',
});

export function toolPatterns(description: string): z.ZodArray<z.ZodString> {
  return list(description, toolPattern, { min: 1, max: 512, kind: SET });
}
