/** Requests to the server: JSON in and out, with the token in the Authorization header. */

import { filled, type Address, type Body, type PathOf, type Returned, type Values } from "./address";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint = "",
  ) {
    super(message);
  }

  /** Whether asking again later may succeed without a change on this side. */
  get isConnection(): boolean {
    return this.status === 0 || this.status >= 502;
  }
}

const TIMEOUT_MS = 20_000;

export class Client {
  constructor(
    readonly base: string,
    readonly token: string,
    private readonly send: typeof fetch = (input, init) => fetch(input, init),
  ) {}

  get<T>(address: Address<T>): Promise<T> {
    return this.request<T>("GET", address);
  }

  put<P extends PathOf<"put">>(path: P, values: Values<P, "put">, body: Body<P, "put">): Promise<Returned<P, "put">> {
    return this.request("PUT", filled(path, values), body);
  }

  post<P extends PathOf<"post">>(path: P, values: Values<P, "post">, body: Body<P, "post">): Promise<Returned<P, "post">> {
    return this.request("POST", filled(path, values), body);
  }

  async remove<P extends PathOf<"delete">>(path: P, values: Values<P, "delete">): Promise<void> {
    await this.request("DELETE", filled(path, values));
  }

  private async request<T>(method: string, path: string, body?: unknown): Promise<T> {
    const headers: Record<string, string> = { Authorization: `Bearer ${this.token}` };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let response: Response;
    try {
      response = await this.send(`${this.base}/api/v1${path}`, {
        method,
        headers,
        signal: AbortSignal.timeout(TIMEOUT_MS),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
    } catch (error) {
      const late = error instanceof DOMException && error.name === "TimeoutError";
      throw new ApiError(0, "unreachable", late ? "the server did not answer in time" : "the server cannot be reached");
    }
    if (response.status === 204) return undefined as T;
    const text = await response.text();
    if (!response.ok) throw errorOf(response.status, text);
    try {
      return JSON.parse(text) as T;
    } catch {
      throw new ApiError(response.status, "invalid_answer", "the server's answer is not JSON");
    }
  }
}

function errorOf(status: number, text: string): ApiError {
  try {
    const { error } = JSON.parse(text) as { error: { code: string; message: string; hint?: string } };
    return new ApiError(status, error.code, error.message, error.hint ?? "");
  } catch {
    return new ApiError(status, "http", `the server answered ${status}`);
  }
}
