/**
 * TypeBox in a few files: it has 266 modules, whose loading is a fifth of what it takes a test process to begin. Loaded
 * before a test (`--import`), this resolves imports of it to the folder that WIREWATCH_TEST_BUNDLES names.
 */
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

export const TYPEBOX = ['@sinclair/typebox', '@sinclair/typebox/compiler', '@sinclair/typebox/value'];

const folder = process.env.WIREWATCH_TEST_BUNDLES;
if (folder !== undefined)
  registerHooks({
    resolve(specifier, context, next) {
      if (!TYPEBOX.includes(specifier)) return next(specifier, context);
      return {
        url: pathToFileURL(join(folder, `${specifier}.mjs`)).href,
        format: 'module',
        shortCircuit: true,
      };
    },
  });
