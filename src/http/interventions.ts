/**
 * What a lab changes in requests and answers. The `Pipeline` of an appliance has no interventions.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Credential } from '../auth/authorize.ts';
import type { Exchange } from './reply.ts';
import type { Answer, Route } from './routes.ts';

export interface Interventions {
  /** Answers a request for an operation. @returns false, with nothing done, for a request to the API */
  control(request: IncomingMessage, response: ServerResponse): boolean;
  /**
   * Called for every request to the API; may change its target.
   *
   * @param route null where there is none
   * @param baseUrl as of problemAnswer
   */
  begin(request: IncomingMessage, exchange: Exchange, route: Route | null, baseUrl: string): Intervention;
  /** For the console: a LabState. */
  readonly shown: () => object;
}

/** Changes to one request, in the order of its steps. */
export interface Intervention {
  /** The connection was cut, or a simulated proxy has answered. */
  readonly isTaken: boolean;
  /** Called before the credential is checked. @throws Refused in place of that */
  atCredential(): void;
  /** Called before the endpoint. @param credential null at an open endpoint; @throws in place of the endpoint */
  atEndpoint(credential: Credential | null): void;
  /** @returns the answer that replaces the endpoint's, not yet compressed */
  answered(answer: Answer): Answer;
  /** Sends every answer, problems too; never rejects. @param closing as of sendAnswer */
  send(answer: Answer, closing: boolean): Promise<void>;
}
