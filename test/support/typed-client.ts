/** A client in TypeScript on openapi-fetch, typed from the OpenAPI document by openapi-typescript. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

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

export function compileClient(folder: string): Promise<void> {
  return run(folder, 'typescript/bin/tsc', ...STRICT, ...MODERN, 'client.ts');
}

async function run(folder: string, script: string, ...args: string[]): Promise<void> {
  const child = spawn(process.execPath, [join(PACKAGES, script), ...args], { cwd: folder, stdio: 'pipe' });
  const [out, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  assert.equal(code, 0, `${script}: ${out}${stderr}`);
}
