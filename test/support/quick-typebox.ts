/**
 * TypeBox in a few files: it has 266 modules, whose loading is a fifth of what it takes a test process to begin. Loaded
 * before a test (`--import`), this resolves imports of it to the folder that WIREWATCH_TEST_TYPEBOX names.
 */
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** What is imported, and the names of the files without their extension. */
export const ENTRIES: Readonly<Record<string, string>> = {
  '@sinclair/typebox': 'typebox',
  '@sinclair/typebox/compiler': 'compiler',
  '@sinclair/typebox/value': 'value',
};

const folder = process.env.WIREWATCH_TEST_TYPEBOX;
if (folder !== undefined)
  registerHooks({
    resolve(specifier, context, next) {
      const name = ENTRIES[specifier];
      if (name === undefined) return next(specifier, context);
      return { url: pathToFileURL(join(folder, `${name}.mjs`)).href, format: 'module', shortCircuit: true };
    },
  });
