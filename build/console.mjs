/**
 * Bundles the console: src/console/ with Preact and htm into the files that the administration port serves, as texts
 * in one JSON file (src/packed.ts reads it). A browser needs nothing else, and asks no other machine.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const FOLDER = 'src/console';

/**
 * @param {string} root the project's folder
 * @returns {Promise<{ files: Record<string, string>, inputs: string[] }>} text by name, and the bundled sources
 */
export async function bundleConsole(root) {
  const result = await build({
    absWorkingDir: root,
    entryPoints: { app: `${FOLDER}/app.ts`, style: `${FOLDER}/style.css` },
    outdir: FOLDER,
    bundle: true,
    minify: true,
    platform: 'browser',
    format: 'esm',
    target: 'es2022',
    legalComments: 'none',
    metafile: true,
    write: false,
    logLevel: 'warning',
  });
  const files = { 'index.html': readFileSync(join(root, FOLDER, 'index.html'), 'utf8') };
  for (const { path, text } of result.outputFiles) files[path.split(/[\\/]/).at(-1)] = text;
  return { files, inputs: Object.keys(result.metafile.inputs) };
}
