"""Chat models as collabsim asks them: typed requests, servers, any model of LangChain."""
