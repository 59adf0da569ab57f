/** The error page, for example after a rejected query. */
import { Component, type ReactNode } from "react";

export class ErrorScreen
  extends Component<{ readonly children?: ReactNode }, { readonly problem: string | null }> {
  override state: { readonly problem: string | null } = { problem: null };

  static getDerivedStateFromError(error: unknown): { readonly problem: string } {
    return { problem: error instanceof Error ? error.message : String(error) };
  }

  override render(): ReactNode {
    const { problem } = this.state;
    if (problem === null) return this.props.children;
    return (
      <div className="error-screen" role="alert">
        <strong>This cannot be shown.</strong>
        <p>{problem}</p>
        <button type="button" className="button" onClick={() => this.setState({ problem: null })}>
          Try again
        </button>
      </div>
    );
  }
}
