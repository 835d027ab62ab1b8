// One bundle for images and publication: a small entry and a chunk per subcommand, so that the
// sidecar loads neither the operator nor its libraries.

import { rmSync } from 'node:fs';

import { defineConfig } from 'rolldown';

import { collectNotices } from './tools/collect-notices.ts';

rmSync('dist', { recursive: true, force: true });

// A named export is what lint allows; rolldown reads the default one.
const config = defineConfig({
  input: { fairlead: 'bin/fairlead.ts' },
  platform: 'node',
  external: [/^node:/],
  plugins: [collectNotices()],
  output: {
    dir: 'dist',
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name]-[hash].js',
    minify: false,
  },
});

export { config as default };
