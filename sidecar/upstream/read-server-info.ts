// What a server says about itself. It is shown in the status page and travels with every bridged
// answer, so it is kept only in a size and depth that can do no harm. Pure.

import { isObject } from './control-request.ts';
import type { Members } from './control-request.ts';
import { isNestedDeeper } from './nesting-depth.ts';

const MAX_CHARACTERS = 16_384;

/** Undefined when there is none, or none that is worth its cost. */
export function readServerInfo(value: unknown): Members | undefined {
  if (!isObject(value) || isNestedDeeper(value)) return undefined;
  return JSON.stringify(value).length > MAX_CHARACTERS ? undefined : value;
}
