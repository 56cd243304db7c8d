import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

export const root = path.join(import.meta.dirname, '..', '..');

export interface SourceFile {
  /** Relative to src/, with slashes. */
  readonly name: string;
  readonly text: string;
  /** The specifiers as written. */
  readonly imports: readonly string[];
}

export const sources: readonly SourceFile[] = readdirSync(path.join(root, 'src'), {
  recursive: true,
  encoding: 'utf8',
})
  .map((name) => name.replaceAll('\\', '/'))
  .filter((name) => name.endsWith('.ts'))
  .sort()
  .map((name) => {
    const text = readFileSync(path.join(root, 'src', name), 'utf8');
    return { name, text, imports: importsOf(text) };
  });

/** The modules that a file imports, including type imports: they are dependencies, too. */
export function importsOf(text: string): string[] {
  const statements = text.matchAll(
    /^\s*(?:import|export)\b[^;]*?\bfrom\s+'([^']+)'|^\s*import\s+'([^']+)'|\bimport\('([^']+)'\)/gm,
  );
  return [...statements].map(([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? '');
}

export const roomOf = (name: string): string => /^(?:tools\/)?[^/]+/.exec(name)?.[0] ?? name;

/** The files that git tracks or would add; without git, all files except generated ones. */
export function projectFiles(): string[] {
  if (existsSync(path.join(root, '.git'))) {
    const args = ['ls-files', '--cached', '--others', '--exclude-standard', '-z'];
    const listed = execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\0');
    return [...new Set(listed)].filter((name) => name !== '' && existsSync(path.join(root, name))).sort();
  }
  const made = /^(node_modules|dist|wirewatch-data|wirewatch-demo|wirewatch-lab|\.git)(\/|$)/;
  return readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(root, path.join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
    .filter((name) => !made.test(name))
    .sort();
}
