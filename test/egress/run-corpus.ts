// All cases of one file, some at a time, in the order of the file.

import type { EgressCorpus } from './corpus-file.ts';
import { IssuedCertificates } from './issued-certificates.ts';
import { runEntry } from './run-case.ts';
import type { CaseResult } from './run-case.ts';

const AT_ONCE = 8;

export async function runCorpus(corpus: EgressCorpus): Promise<readonly CaseResult[]> {
  const certificates = new IssuedCertificates();
  const results: CaseResult[] = [];
  const queue = corpus.entries.entries();
  const work = async (): Promise<void> => {
    for (const [index, entry] of queue)
      results[index] = await runEntry(entry, { corpus, certificates });
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return results;
}
