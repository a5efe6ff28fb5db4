namespace Orchard;

/// <summary>Stores trees. See <see cref="Tree"/>.</summary>
/// <remarks><para>Not safe for several threads.</para></remarks>
public sealed class Service<TObject> where TObject : class
{
    private readonly List<TObject> items = new();
}
