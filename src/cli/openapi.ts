/** `wirewatch openapi`: the machine-readable description of what the appliance serves. */
import type { Command } from 'commander';
import { openApiDocument } from '../openapi/document.ts';
import { addExamples } from './options.ts';
import { print } from './output.ts';

export function register(program: Command): void {
  const command = program
    .command('openapi')
    .description('print the OpenAPI 3.1 document of what the appliance serves')
    .action(() => print(openApiDocument(), { json: true, text: '' }));
  addExamples(command, ['openapi > openapi.json']);
}
