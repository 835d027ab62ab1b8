// The published program: dist/fairlead.js and one chunk per subcommand, loaded when asked for, so
// that the sidecar loads neither the operator nor its libraries. Packages are bundled in: an image
// needs no node_modules.

import { chmod } from 'node:fs/promises';
import { join } from 'node:path';

import { defineConfig } from 'rolldown';
import type { Plugin } from 'rolldown';

import { collectNotices } from './tools/collect-notices.ts';

const executable: Plugin = {
  name: 'executable',
  async writeBundle({ dir = 'dist' }) {
    await chmod(join(dir, 'fairlead.js'), 0o755);
  },
};

// A named export is what lint allows; rolldown reads the default one.
const config = defineConfig({
  input: { fairlead: 'bin/fairlead.ts' },
  platform: 'node',
  plugins: [collectNotices(), executable],
  // A package that cannot be resolved would be left out of the image without a word.
  onLog(level, log, report) {
    if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message);
    report(level, log);
  },
  output: {
    dir: 'dist',
    format: 'esm',
    cleanDir: true,
    chunkFileNames: 'chunks/[name]-[hash].js',
  },
});

export { config as default };
