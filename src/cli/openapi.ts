/** `wirewatch openapi`: the OpenAPI document of the API. */
import { openApiDocument } from '../openapi/document.ts';
import { defineCommand } from './command.ts';

export const register = defineCommand({
  examples: ['openapi > openapi.json'],
  run() {
    const value = openApiDocument();
    return { value, text: () => JSON.stringify(value, null, 2) };
  },
});
