/** Which test files start the program, and so need it bundled. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Whether a test file starts the program, by way of what it imports.
 *
 * @param tests the folder of all tests
 */
export function startsProgram(file: string, tests: string, seen = new Set<string>()): boolean {
  if (file === path.join(tests, 'support', 'command.ts')) return true;
  if (seen.has(file) || !file.startsWith(tests)) return false;
  seen.add(file);
  const imports = readFileSync(file, 'utf8').matchAll(
    /^(?:import|export)(?! type)[^;]*? from '(\..*?\.ts)'/gm,
  );
  return [...imports].some(([, name = '']) =>
    startsProgram(path.resolve(path.dirname(file), name), tests, seen),
  );
}
