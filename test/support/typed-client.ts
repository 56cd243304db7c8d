/** A client in TypeScript on openapi-fetch, typed from the OpenAPI document by openapi-typescript. */
import { execFile } from 'node:child_process';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const PACKAGES = join(import.meta.dirname, '..', '..', 'node_modules');
const STRICT = ['--strict', '--noEmit', '--skipLibCheck', '--allowImportingTsExtensions', '--types', 'node'];
const MODERN = ['--module', 'nodenext', '--moduleResolution', 'nodenext', '--target', 'es2024'];

/** Writes a client that Node can run by stripping its types. @param source may import this project's packages */
export function writeTypedClient(folder: string, source: string): void {
  symlinkSync(PACKAGES, join(folder, 'node_modules'), 'junction');
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'client.ts'), source);
}

/**
 * Generates the types of a written client (`api.ts`), and compiles both.
 *
 * @param document the OpenAPI document as JSON
 */
export async function compileTypedClient(folder: string, document: string): Promise<void> {
  writeFileSync(join(folder, 'openapi.json'), document);
  await run(folder, 'openapi-typescript/bin/cli.js', 'openapi.json', '-o', 'api.ts');
  await compileClient(folder);
}

export const compileClient = (folder: string): Promise<void> =>
  run(folder, 'typescript/bin/tsc', ...STRICT, ...MODERN, 'client.ts');

async function run(folder: string, script: string, ...args: string[]): Promise<void> {
  await promisify(execFile)(process.execPath, [join(PACKAGES, script), ...args], { cwd: folder });
}
